"""Everything on one machine: stores in files, models in process."""
