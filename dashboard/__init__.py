"""What the running program does, as pages: views of it, rendered on the server and kept fresh by events.

    meter       what the operators tell, added up         flow       the dataflow as a picture of these figures
    answers     how parts ended, with their paths          gaps       what was asked and not answered
    knowledge   sources, searches, the team's topics       cost       tokens, and what they cost
    processes   who does the work, where several do
    showing     what may be shown of texts and people      access     who may look, and from where
    rendering   templates and headers                      pages, correcting, live     one handler a page
    serving     all of it on an aiohttp application

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
