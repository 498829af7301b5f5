"""What the book shows: charts, boxes, pages, and the guard of a chapter's parameters."""
