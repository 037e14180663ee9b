import { isOptions, warnOnce } from '@sluice/core'
import { mapped } from './named-policies.ts'
import type { PolicyFile } from './policy-file.ts'

/** Fields that earlier releases had, and what replaces them. */
const removed: Readonly<Record<string, string>> = {
  githubExtras: `write 'legacy-github' in headers`,
  idempotentRetries: 'three retries are free',
}

/**
 * Drops the fields of earlier releases, and warns about each once. The file itself keeps them, so
 * that a fleet with two releases sees one version.
 */
export function withoutRemoved(file: PolicyFile): PolicyFile {
  const kept = withoutFields(file)
  if (!isOptions(kept) || !isOptions(kept.routes)) return kept
  return { ...kept, routes: mapped(kept.routes, withoutFields) }
}

function withoutFields<Fields>(fields: Fields): Fields {
  if (!isOptions(fields)) return fields
  const kept = { ...fields }
  for (const [field, instead] of Object.entries(removed)) {
    if (!Reflect.has(kept, field)) continue
    Reflect.deleteProperty(kept, field)
    warnOnce(`a policy file has ${field}, which is ignored: ${instead}`, `removed field ${field}`)
  }
  return kept
}
