from nicegui import ui
def draw(window):
    ui.label("Open a table first.")
