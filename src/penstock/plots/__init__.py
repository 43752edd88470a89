"""Pictures of graphs and results, drawn by matplotlib, which is loaded when the first is drawn."""
