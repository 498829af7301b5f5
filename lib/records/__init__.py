"""Records: one text file per cell that has been measured."""
