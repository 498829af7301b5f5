"""What the book displays: charts, boxes, pages; and the guard of a chapter's parameters."""
