"""Steps: one module per rule, same name as the rule."""
