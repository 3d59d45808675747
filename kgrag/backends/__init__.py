"""Backends: what each port runs on. Only ``build.py`` imports them."""
