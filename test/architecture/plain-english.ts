import type { Root } from 'nlcst'
import { toString as textOf } from 'nlcst-to-string'
import { visit } from 'unist-util-visit'
import type { VFile } from 'vfile'

const maxWords = 30

/** Phrases that read as translated, and the idiom of the trade. */
const phrases: readonly (readonly [phrase: RegExp, instead: string])[] = [
  // A question may open so.
  [
    /^["'“(]*(What|Who|Whom|Whose|Where|Which|How|Those|Whether)(ever)?\b(?!.*\?\W*$)/,
    'begin with a noun',
  ],
  [
    /\b(of|by|for|than|to|with|from|gets|takes|gives|keeps|tells) what(ever)?\b(?!.*\?)/,
    'use a noun in place of the clause',
  ],
  [/[;:] (what|who)(ever)?\b(?!.*\?)/, 'use a noun in place of the clause'],
  [/^(So|Nor|Neither) (is|are|was|do|does|did|has|have|can)\b|^Not (that|so)\b/, 'verb second'],
  [/\bas ever\b|\bfrom then on\b|\bany more\b/i, 'as usual, afterwards, no longer'],
  [/\bat the (latest|most|least)\b/i, 'within, at most, at least'],
  [/\b(is|are|was|were) believed\b/i, 'is cached, is trusted, counts as'],
  [/\b(is|are|be|been) handed\b|\bhand(s|ed)? (it|them|over|on)\b/i, 'is passed, returns'],
  [/\b(has|have|had) to bear\b/i, 'must handle'],
  [/\bstands? (twice|once|there|alone|beside|behind|in (for|force|the))\b/i, 'occurs, replaces'],
  [/\b(goes|go) on\b/i, 'continues'],
  [/\b(is|are|was|were) (told|asked)\b|\btells (whether|what|why|of)\b/i, 'receives, returns'],
]

/** A plugin of retext: reports sentences that are long, or have a phrase of the list. */
export function plainEnglish() {
  return (tree: Root, file: VFile): void => {
    visit(tree, 'SentenceNode', ({ children }) => {
      const text = children
        .map((node) => (node.type === 'SourceNode' ? 'CODE' : textOf(node)))
        .join('')
        .replaceAll(/\s+/g, ' ')
        .trim()
      // The parser ends no sentence behind a number, or in front of code.
      for (const sentence of text.split(/(?<=[.!?]["”)]*) (?=[A-Z])/)) report(sentence, file)
    })
  }
}

function report(sentence: string, file: VFile): void {
  const words = sentence.split(' ').filter((word) => /[a-z0-9]/i.test(word)).length
  if (words > maxWords) file.message(`${words} words, but ${maxWords} are enough: ${sentence}`)
  for (const [phrase, instead] of phrases) {
    if (phrase.test(sentence)) file.message(`${instead}: ${sentence}`)
  }
}
