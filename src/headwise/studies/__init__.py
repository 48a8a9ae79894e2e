"""Studies that come with the library, and what they bring to reports.

`headwise study list` names them, and `headwise study run NAME` runs one from any folder.
"""
