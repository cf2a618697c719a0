"""Pages about the running program, rendered on the server and kept fresh by events.

    flow        counts the items, failures and durations of each operator, and draws the dataflow with these figures
    overview    whether all is well, what was done by day, what to do next
    views       answers with their paths, gaps, knowledge, cost and processes
    forms       what operators decide: about answers that wait for approval, and in answer to a gap
    data        what the pages read and change: the interfaces that a run implements
    display     rules for showing texts and names          access      the access check
    pages       the templates and handlers of the pages
    serving     the routes on an aiohttp application, and the stream of live events

Views are functions from values to frozen dataclasses. Nothing here reads the configuration. It loads aiohttp and
jinja2: import it only where the dashboard is on.
"""

# pyright: reportUnusedImport=false
from dashboard.access import LOOPBACK, AccessControl
from dashboard.data import DashboardData, DraftList, GapDismissals, History, Teacher, Team
from dashboard.display import DisplayRules
from dashboard.flow import FlowMeter
from dashboard.serving import add_pages
from dashboard.views import KnownSource
