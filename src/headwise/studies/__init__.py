"""Studies that come with the library, each one file; one that begins with `_` is a part of others.

`headwise study list` names them, and `headwise study run NAME` runs one from any folder.
"""
