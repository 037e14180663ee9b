import type { Policy } from '../api/types.ts'
import { count, plain } from './format.ts'

/** The texts of the form for one policy. */
export interface PolicyForm {
  readonly limit: string
  readonly burst: string
  readonly mode: 'enforce' | 'shadow'
  /** In percent. */
  readonly share: string
  /** A local time of the reader; empty: until it is changed again. */
  readonly until: string
}

export interface EntryToSet {
  readonly policy: string
  readonly field: 'limit' | 'burst' | 'mode' | 'share'
  readonly value: unknown
  readonly until?: string
}

export type FormFaults = { readonly [field in keyof PolicyForm]?: string }

export function formOf({ limit, burst, mode, share }: Policy): PolicyForm {
  return {
    limit: typeof limit === 'object' ? JSON.stringify(limit) : String(limit ?? ''),
    burst: burst === undefined ? '' : String(burst),
    mode,
    share: share === undefined ? '100' : String(Math.round(share * 10_000) / 100),
    until: '',
  }
}

/** Finds what is wrong with a form as it is typed; the API has the last word. */
export function faultsOf(form: PolicyForm): FormFaults {
  const share = Number(form.share)
  const until = form.until === '' ? Number.POSITIVE_INFINITY : Date.parse(form.until)
  return {
    ...(limitOf(form.limit) === undefined && {
      limit: `A whole number from 0 on, 'unlimited', or an object as in the file`,
    }),
    ...(form.burst !== '' &&
      !/^[1-9]\d*$/.test(form.burst) && { burst: 'A whole number from 1 on' }),
    ...((form.share === '' || !(share >= 0 && share <= 100)) && {
      share: 'A number from 0 to 100',
    }),
    ...(!(until > Date.now()) && { until: 'A time in the future' }),
  }
}

/** Returns the entries for the fields that differ from the values in force. */
export function entriesOf(policy: Policy, form: PolicyForm): readonly EntryToSet[] {
  const before = formOf(policy)
  const until = form.until === '' ? {} : { until: new Date(form.until).toISOString() }
  const values = {
    limit: limitOf(form.limit),
    burst: Number(form.burst),
    mode: form.mode,
    share: Number(form.share) / 100,
  }
  return policy.fields
    .filter((field) => form[field] !== before[field] && form[field] !== '')
    .map((field) => ({ policy: policy.name, field, value: values[field], ...until }))
}

/** Reads a limit as people type it; `undefined`: it is none. */
export function limitOf(text: string): unknown {
  const bare = text.trim().replaceAll(/(?<=\d)[,_ ](?=\d{3})/g, '')
  if (/^\d{1,15}$/.test(bare)) return Number(bare)
  if (bare === 'unlimited') return bare
  try {
    const value: unknown = JSON.parse(bare)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** Parts of a limit for a table: `600`; `600 / 6,000` and `by plan`. */
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

/** Writes a limit in one line: `600`, `600 / 6,000 by plan`, `schedule`. */
export function limitText(limit: unknown): string {
  const { amounts, source } = limitParts(limit)
  return `${amounts} ${source}`.trim()
}

/** Writes a window as the file has it: `1m`; a number is in ms. */
export function windowText(window: string | number | undefined): string {
  if (window === undefined) return ''
  return typeof window === 'number' ? `${window} ms` : window
}

/** Writes a key of a file: `tenant + ip`, `user or ip`. */
export function keyText(key: unknown): string {
  if (typeof key !== 'object' || key === null) return String(key ?? 'ip')
  const all: unknown = Reflect.get(key, 'all')
  if (Array.isArray(all)) return all.map(keyText).join(' + ')
  const firstOf: unknown = Reflect.get(key, 'firstOf')
  return Array.isArray(firstOf) ? firstOf.map(keyText).join(' or ') : JSON.stringify(key)
}
