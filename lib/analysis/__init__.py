"""From records to findings; nothing here measures or shows."""
