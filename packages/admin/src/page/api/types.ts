import type { Static } from '@sinclair/typebox'
import type { actionAnswer, lookupAnswer, topAnswer, unlockAnswer } from '../../api/schemas/keys.ts'
import type {
  changeAnswer,
  diffAnswer,
  exportAnswer,
  fleetAnswer,
  historyAnswer,
  policiesAnswer,
} from '../../api/schemas/policies.ts'
import type {
  auditAnswer,
  deadActionAnswer,
  deadAnswer,
  liveAnswer,
  queuesAnswer,
  sessionAnswer,
} from '../../api/schemas/views.ts'

// The types of the answers, as the OpenAPI file has them: both are made of the schemas.

export type Session = Static<typeof sessionAnswer>
export type Live = Static<typeof liveAnswer>
export type Policies = Static<typeof policiesAnswer>
export type Policy = Policies['policies'][number]
export type Entry = Policies['entries'][number]
export type Override = Policies['overrides'][number]
export type Change = Static<typeof changeAnswer>
export type Difference = Change['differences'][number]
export type Affected = Change['affected']
export type History = Static<typeof historyAnswer>
export type VersionRecord = History['versions'][number]
export type Diff = Static<typeof diffAnswer>
export type Export = Static<typeof exportAnswer>
export type Fleet = Static<typeof fleetAnswer>
export type Lookup = Static<typeof lookupAnswer>
export type KeyPolicy = Lookup['policies'][number]
export type KeyAction = Static<typeof actionAnswer>
export type Unlock = Static<typeof unlockAnswer>
export type Top = Static<typeof topAnswer>
export type Queues = Static<typeof queuesAnswer>
export type QueueState = Queues['queues'][number]
export type Dead = Static<typeof deadAnswer>
export type DeadAction = Static<typeof deadActionAnswer>
export type Audit = Static<typeof auditAnswer>
export type AuditRecord = Audit['records'][number]
