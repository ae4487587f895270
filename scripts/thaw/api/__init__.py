"""For notebooks: results as tables, stored features, two runs compared. Nothing inside Thaw imports it."""
