"""Workloads: a data set, a model, a goal error and what is tuned; the book's and a reader's own."""
