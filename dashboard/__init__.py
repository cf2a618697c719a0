"""What the running program does, as pages: views of it, rendered on the server and kept fresh by events.

    meter       the figures of each operator: items, failures, durations
    flow        the dataflow as a picture of these figures
    views       answers with their paths, gaps, knowledge, cost and processes
    display     which texts and names may be shown         access      who may look, and from where
    pages       the data, templates and handlers of the pages
    serving     the routes on an aiohttp application, and the stream of live events

Views are functions from values to frozen dataclasses. Nothing here reads the configuration. It loads aiohttp and
jinja2: import it only where the dashboard is on.
"""

# pyright: reportUnusedImport=false
from dashboard.access import AccessControl
from dashboard.display import DisplayRules
from dashboard.meter import FlowMeter
from dashboard.pages import DashboardData, Team
from dashboard.serving import add_pages
from dashboard.views import KnownSource
