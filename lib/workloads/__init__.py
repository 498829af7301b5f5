"""Workloads: a data set, a model, a task with its goals and what is tuned; the book's and a
reader's own.
"""
