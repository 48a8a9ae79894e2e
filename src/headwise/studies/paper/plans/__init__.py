"""The plans of its studies, each one file; one that begins with `_` is a part of others."""
