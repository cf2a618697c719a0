from __future__ import annotations

import pytest

from services.search.text.markdown import is_mdx, read_mdx


def shown(text: str) -> str:
    return "\n\n".join(section.text for section in read_mdx(text).sections)


def test_statements_components_and_expressions_vanish_around_the_text() -> None:
    text = """---
title: Page
---
import { Tabs, TabItem } from '@astrojs/starlight/components';
export const rows = [
  { a: 1 },

  { a: 2 },
];

{/* a comment

over two paragraphs */}

Hello {name}, {'friend'}{" "}<Since v="1.0" />!

<Tabs syncKey="pkg">
  <TabItem label="npm">
    ```sh
    npm i
    ```
  </TabItem>
  <TabItem label={'yarn'}>
  Use yarn.
  </TabItem>
</Tabs>
<Aside type="tip" title="Mind this">It is `{code}`.</Aside>
<LinkCard title="Next" href="/next/" description="Go on." />
"""
    article = read_mdx(text)
    assert article.title == "Page"
    assert shown(text) == (
        "Hello , friend !\\n\\n**npm**\\n\\n```sh\\nnpm i\\n```\\n\\n**yarn**\\nUse yarn.\\n\\n"
        "**Mind this**\\nIt is `{code}`.\\n\\n**[Next](/next/)**\\nGo on."
    ).replace("\\n", "\n")


def test_steps_keep_their_numbers() -> None:
    assert shown("<Steps>\n1. One\n\n   ```js\n   import x\n   ```\n2. Two\n</Steps>") == (
        "1. One\n```js\nimport x\n```\n2. Two"
    )


def test_anchors_are_those_of_its_generators() -> None:
    text = "# A\n\nx\n\n## B & c\n\nx\n\n## B & c\n\nx\n\n## D {/* #own */}\n\nx"
    assert [section.anchor for section in read_mdx(text).sections] == ["", "b--c", "b--c-1", "own"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("import A from '@theme/A';\n\n# T", True), ("# T\n\n```js\nimport A from 'a'\n```", False), ("import it", False)],
)
def test_markdown_that_imports_is_mdx(text: str, expected: bool) -> None:
    assert is_mdx(text) is expected
