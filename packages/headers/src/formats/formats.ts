import type { Dialect } from '../values/dialect.ts'
import type { DialectFormat } from './dialect-format.ts'
import { draft6 } from './draft-6.ts'
import { draft7 } from './draft-7.ts'
import { draft11 } from './draft-11.ts'
import { legacy, legacyDelta } from './legacy.ts'

export const formats: Readonly<Record<Dialect, DialectFormat>> = {
  'draft-11': draft11,
  'draft-10': draft11,
  'draft-9': draft11,
  'draft-8': draft11,
  'draft-7': draft7,
  'draft-6': draft6,
  legacy,
  'legacy-delta': legacyDelta,
}
