"""The words of a question that are looked for in files, as opposed to those that ask (DOCUMENT_QA 5.1)."""

from __future__ import annotations

import re

from services.documents.asking import positions

# Words of questions about files that do not stand in the files.
_STRUCTURE = re.compile(
    r"\b(?:entr(?:y|ies)|lines?|log(?:s|ged|file|files)?|files?|records?|messages?|events?|appear(?:s|ed)?|occur(?:s|red|rence|rences)?"
    r"|happen(?:s|ed|ing)?|show(?:s|n)?|numbers?|mention(?:s|ed|ing)?|contain(?:s|ed|ing)?|about|there|second|third|fourth|fifth|written|wrote|write|find|found"
    r"|first|1st|last|latest|earliest|newest|oldest|initial|final|recent|many|often|count|total|amount|quantity|types?|kinds?|categor(?:y|ies)|penultimate|list|all|any|every|each|times?|levels?|severit(?:y|ies)"
    r"|between|after|before|since|until|during|around|exactly|say(?:s|ing)?|said|tell|give|print(?:ed)?|text|content|row|position"
    r"|distribution|breakdown|common|frequent|most|which|what|when|where|who|why|how|did|does|do|was|were|is|are|the|that|this"
    r"|report(?:ed|s)?|record(?:ed|s)?|exist(?:s)?|present|see|seen|begin|start(?:s|ed)? with|end(?:s)? with|date|day|timestamp"
    r"|components?|frequently|hits?|attached|one|two|three|four|five|six|seven|eight|nine|ten|attachment|upload(?:ed)?|posted|evidence|stuff|going on|exact|full|whole|please|at|on|in|of|for|to|with|its|it"
    r"|anything|something|everything|anywhere|nowhere|up|down|come|turn(?:s|ed)? up|still|ever|trace|sign|altogether|overall|quote|happening|search|look(?:ing)?|grep|refer(?:s|red)?|right|just|immediately|next|previous|preceding"
    r"|follow(?:s|ed|ing)?|preced(?:es|ed)|succeed(?:s|ed)?|later|earlier|per|came|comes?|error|errors|warning|warnings|fatal|critical|warn|info|debug|trace|notice|only|single|very|exactly|went|gone|wrong|point|moment|instan(?:ce|t))\b",
    re.IGNORECASE,
)


def content(question: str) -> str:
    """What is left of a question when the words about files and time are taken out of it."""
    if positions.how_it_ends(question):
        return ""
    return " ".join(_STRUCTURE.sub(" ", positions.without_wanted(positions.without_beginning(question))).split())
