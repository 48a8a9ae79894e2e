"""Algorithms: from data to updates. One file each; pure tensor code that never logs or steps."""
