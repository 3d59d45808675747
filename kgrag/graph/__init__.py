"""From what text units state to a graph: statements, entities, relationships, claims, communities and their reports."""
