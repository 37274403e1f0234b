"""One HTML file that shows a run: no server, no request, no build step."""
