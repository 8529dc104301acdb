"""Puts window, aggregate and algorithm together: chooses, drives, explains, takes snapshots."""
