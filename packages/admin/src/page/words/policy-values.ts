import type { Policy } from '../api/types.ts'
import { count, plain } from './format.ts'

export interface PolicyForm {
  /** The numbers of the limit by their place: `''`, `tiers free`. */
  readonly limits: Readonly<Record<string, string>>
  readonly burst: string
  readonly mode: 'enforce' | 'shadow'
  /** In percent. */
  readonly share: string
  /** The reader's local time; empty means until changed again. */
  readonly until: string
}

export interface EntryToSet {
  readonly policy: string
  readonly field: 'limit' | 'burst' | 'mode' | 'share'
  readonly value: unknown
  readonly until?: string
}

/** Mistakes by field; in a number of a limit: `limit tiers free`. */
export type FormFaults = Readonly<Record<string, string>>

export function formOf({ limit, burst, mode, share }: Policy): PolicyForm {
  return {
    limits: Object.fromEntries(numbersIn(limit)),
    burst: burst === undefined ? '' : String(burst),
    mode,
    share: share === undefined ? '100' : String(Math.round(share * 10_000) / 100),
    until: '',
  }
}

/** Validates a form while it is typed; the API's checks decide. */
export function faultsOf(form: PolicyForm): FormFaults {
  const share = Number(form.share)
  const until = form.until === '' ? Number.POSITIVE_INFINITY : Date.parse(form.until)
  const limits = Object.entries(form.limits).filter(([, text]) => limitOf(text) === undefined)
  return {
    ...Object.fromEntries(
      limits.map(([place]) => [`limit ${place}`, `A whole number, 0 or more, or 'unlimited'`]),
    ),
    ...(form.burst !== '' &&
      !/^[1-9]\d*$/.test(form.burst) && { burst: 'A whole number, 1 or more' }),
    ...((form.share === '' || !(share >= 0 && share <= 100)) && {
      share: 'A number from 0 to 100',
    }),
    ...(!(until > Date.now()) && { until: 'A time in the future' }),
  }
}

/** Returns the entries for the fields that differ from the current values. */
export function entriesOf(policy: Policy, form: PolicyForm): readonly EntryToSet[] {
  const textsOf = ({ limits, ...form }: PolicyForm) => ({ ...form, limit: JSON.stringify(limits) })
  const [before, texts] = [textsOf(formOf(policy)), textsOf(form)]
  const until = form.until === '' ? {} : { until: new Date(form.until).toISOString() }
  const values = {
    limit: withNumbers(policy.limit, form.limits),
    burst: Number(form.burst),
    mode: form.mode,
    share: Number(form.share) / 100,
  }
  return policy.fields
    .filter((field) => texts[field] !== before[field] && texts[field] !== '')
    .map((field) => ({ policy: policy.name, field, value: values[field], ...until }))
}

/** Parses a typed limit; `undefined` if it is not one. */
export function limitOf(text: string): number | 'unlimited' | undefined {
  const bare = text.trim().replaceAll(/(?<=\d)[,_ ](?=\d{3})/g, '')
  if (/^\d{1,15}$/.test(bare)) return Number(bare)
  return bare === 'unlimited' ? bare : undefined
}

/** `by` names the function of tiers; a tier may have this name too. */
const isSource = (name: string, place: string) => name === 'by' && !place.endsWith('tiers')

/** Finds the numbers of tiers and schedules by their place; a plain limit is at `''`. */
function numbersIn(limit: unknown, place = ''): readonly (readonly [string, string])[] {
  if (typeof limit === 'number' || limit === 'unlimited') return [[place, String(limit)]]
  if (typeof limit !== 'object' || limit === null) return []
  return Object.entries(limit).flatMap(([name, inner]) =>
    isSource(name, place) ? [] : numbersIn(inner, `${place} ${name}`.trim()),
  )
}

function withNumbers(limit: unknown, texts: PolicyForm['limits'], place = ''): unknown {
  const text = texts[place]
  if (text !== undefined) return limitOf(text)
  if (typeof limit !== 'object' || limit === null) return limit
  const inner = (name: string, each: unknown) => withNumbers(each, texts, `${place} ${name}`.trim())
  if (Array.isArray(limit)) return limit.map((each, index) => inner(String(index), each))
  return Object.fromEntries(
    Object.entries(limit).map(([at, each]) => [at, isSource(at, place) ? each : inner(at, each)]),
  )
}

/** Returns parts of a limit for a table: `600`; `600 / 6,000` and `by plan`. */
export function limitParts(limit: unknown): { readonly amounts: string; readonly source: string } {
  if (typeof limit === 'number') return { amounts: count(limit), source: '' }
  if (typeof limit !== 'object' || limit === null) return { amounts: plain(limit), source: '' }
  const by: unknown = Reflect.get(limit, 'by')
  const tiers: unknown = Reflect.get(limit, 'tiers')
  const amounts =
    typeof tiers === 'object' && tiers !== null
      ? Object.values(tiers).map(limitText).join(' / ')
      : ''
  return { amounts, source: by === undefined ? Object.keys(limit).join(', ') : `by ${String(by)}` }
}

/** Formats a limit in one line: `600`, `600 / 6,000 by plan`, `schedule`. */
export function limitText(limit: unknown): string {
  const { amounts, source } = limitParts(limit)
  return `${amounts} ${source}`.trim()
}

/** Formats a window as part of a limit: ` / 1m`, ` / 1 month (Europe/Rome)`; numbers are ms. */
export function windowText(window: Policy['window']): string {
  if (typeof window === 'object') return ` / 1 ${window.every} (${window.zone})`
  return window === undefined ? '' : ` / ${window}${typeof window === 'number' ? ' ms' : ''}`
}

/** Formats a key of a file: `tenant + ip`, `user or ip`. */
export function keyText(key: unknown): string {
  if (typeof key !== 'object' || key === null) return String(key ?? 'ip')
  const all: unknown = Reflect.get(key, 'all')
  if (Array.isArray(all)) return all.map(keyText).join(' + ')
  const firstOf: unknown = Reflect.get(key, 'firstOf')
  return Array.isArray(firstOf) ? firstOf.map(keyText).join(' or ') : JSON.stringify(key)
}
