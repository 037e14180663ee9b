import type { Dialect, DialectFormat } from './dialect-format.ts'
import { draft11 } from './draft-11.ts'
import { legacy, legacyDelta, legacyGithub } from './legacy.ts'
import { draft6, draft7 } from './older-drafts.ts'

/** The dialects by all their names. */
export const formats: Readonly<Record<Dialect, DialectFormat>> = {
  'draft-11': draft11,
  'draft-10': draft11,
  'draft-9': draft11,
  'draft-8': draft11,
  'draft-7': draft7,
  'draft-6': draft6,
  legacy,
  'legacy-delta': legacyDelta,
  'legacy-github': legacyGithub,
}

/** A field that some dialect writes. */
type RateLimitField = Pick<DialectFormat, 'family'> & { readonly name: string }

/** The fields of all dialects, by lower-case name. */
export const rateLimitFields: ReadonlyMap<string, RateLimitField> = new Map(
  Object.values(formats).flatMap(({ family, fieldNames }) =>
    fieldNames.map((name) => [name.toLowerCase(), { name, family }]),
  ),
)
