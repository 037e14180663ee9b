import { onOneLine } from '@sluice/core'
import { unreadableSection } from '../input/log-options.ts'
import type { Column } from '../report/columns.ts'
import { countText, durationText, shareText, timeText } from '../report/formats.ts'
import type { Style } from '../terminal/style.ts'
import { columnTable, section, table } from '../terminal/text.ts'
import type { Guesser, LimitPair, SuggestedLimit, Suggestion } from './suggestion.ts'

const listedOutliers = 10

export function suggestionText(suggestion: Suggestion, style: Style): string {
  const { log, identities, key, pair, quantiles, alternatives, warnings } = suggestion
  const { outlierCount, guesses } = suggestion
  const part = (title: string, lines: readonly string[]) => section(style('bold', title), lines)
  const otherColumns: readonly Column<LimitPair>[] = [
    ['may touch', ({ maxTouched }) => shareText(maxTouched, 1)],
    ['>burst', ({ burst }) => limitText(burst)],
    ['>sustained', ({ sustained }) => limitText(sustained)],
    ['>touches', (other) => touchedText(other, identities)],
  ]
  return [
    `${countText(log.requests)} requests from ${countText(identities)} identities (${key}), ${timeText(log.fromMs)} to ${timeText(log.toMs)} UTC`,
    ...part('Most requests by one identity in any window', [
      ...table(
        ['window', '>half', '>90%', '>99%', '>99.9%', '>all'],
        quantiles.map(({ windowMs, p50, p90, p99, p999, max }) => [
          durationText(windowMs),
          ...[p50, p90, p99, p999, max].map(countText),
        ]),
      ),
    ]),
    ...part('Suggested limits', [
      `burst      ${limitText(pair.burst)}`,
      `sustained  ${limitText(pair.sustained)}`,
      `touches    ${touchedText(pair, identities)}${besides(outlierCount)}`,
    ]),
    ...part('Alternatives', columnTable(otherColumns, alternatives)),
    ...part('Left out of the figures, and candidates for a block', outlierLines(suggestion)),
    ...part(
      'Repeatedly answered with 401 or 403: possible password guessing',
      guesses.length === 0 ? [] : columnTable(guessColumns, guesses.slice(0, listedOutliers)),
    ),
    ...unreadableSection(log, style),
    ...part(
      style('yellow', 'Notes'),
      warnings.map((warning) => `- ${onOneLine(warning)}`),
    ),
    '',
  ].join('\n')
}

const guessColumns: readonly Column<Guesser>[] = [
  ['identity', ({ client }) => client],
  ['>refused', ({ refused }) => countText(refused)],
  ['route', ({ route }) => route],
]

function outlierLines({ outliers, outlierCount, quantiles }: Suggestion): readonly string[] {
  if (outlierCount === 0) return []
  const listed = outliers.slice(0, listedOutliers)
  const rest = outlierCount - listed.length
  const heads = quantiles.map(({ windowMs }) => `>in ${durationText(windowMs)}`)
  return [
    ...table(
      ['identity', '>requests', ...heads],
      listed.map(({ client, requests, rates }) => [client, ...[requests, ...rates].map(countText)]),
    ),
    ...(rest > 0 ? [`and ${countText(rest)} more; --json lists up to 50`] : []),
  ]
}

function besides(outlierCount: number): string {
  return outlierCount > 0 ? `, not counting ${countText(outlierCount)} left out` : ''
}

function limitText({ limit, windowMs }: SuggestedLimit): string {
  return `${countText(limit)} / ${durationText(windowMs)}`
}

function touchedText({ touched }: LimitPair, identities: number): string {
  return `${countText(touched)} of ${countText(identities)} (${shareText(touched, identities)})`
}

const address = /^@ip\/([0-9a-f.:]+(?:\/\d+)?)$/

export function policyFileText(suggestion: Suggestion): string {
  const { key, pair, outliers, outlierCount, log, identities } = suggestion
  const blocked = outliers.flatMap(({ client }) => address.exec(client)?.[1] ?? [])
  return [
    `# Suggested by sluice from ${countText(log.requests)} requests from ${countText(identities)} identities,`,
    `# ${timeText(log.fromMs)} to ${timeText(log.toMs)} UTC. Touches ${touchedText(pair, identities)}${besides(outlierCount)}.`,
    ...(key === 'ip' ? [] : [`key: ${key}`]),
    'policies:',
    ...entry('burst', pair.burst),
    ...entry('sustained', pair.sustained),
    ...(blocked.length > 0
      ? [
          '# Left out of the figures: check them, and block them if they are abusive.',
          '# block:',
          `#   ips: [${blocked.map((ip) => `'${ip}'`).join(', ')}]`,
        ]
      : []),
    '',
  ].join('\n')
}

function entry(name: string, { limit, windowMs }: SuggestedLimit): readonly string[] {
  return [`  - name: ${name}`, `    limit: ${limit}`, `    window: ${durationText(windowMs)}`]
}
