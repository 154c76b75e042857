"""The workbench: pages in the browser, served from this machine, that walk the whole way from a table to a release.

Nothing imports this room.  It calls the public interface of ``shoal`` alone, so whatever a page does, a script can do.
"""
