import { type Static, Type } from '@sinclair/typebox'

// Answers of the admin API, as far as the commands read them. Later versions may add fields.

const count = Type.Integer({ minimum: 0 })

export const liveAnswer = Type.Object({
  instance: Type.String(),
  at: Type.Integer(),
  since: Type.Integer(),
  processes: count,
  /** By result. */
  requests: Type.Record(Type.String(), count),
  store: Type.Object({ breaker: Type.String(), fallback: Type.Boolean(), instances: count }),
})
export type Live = Static<typeof liveAnswer>

export const topAnswer = Type.Object({
  by: Type.String(),
  window: Type.String(),
  lists: Type.Array(
    Type.Object({
      policy: Type.String(),
      mode: Type.String(),
      total: count,
      keys: Type.Array(
        Type.Object({
          digest: Type.String(),
          name: Type.Optional(Type.String()),
          count,
          error: count,
        }),
      ),
    }),
  ),
})
export type Top = Static<typeof topAnswer>

export const nearAnswer = Type.Object({
  processes: count,
  identities: Type.Array(
    Type.Object({
      policy: Type.String(),
      mode: Type.String(),
      digest: Type.String(),
      name: Type.Optional(Type.String()),
      denied: count,
      share: Type.Optional(Type.Number()),
    }),
  ),
})

export const lookupAnswer = Type.Object({
  digest: Type.String(),
  name: Type.Optional(Type.String()),
  found: Type.Boolean(),
  isAway: Type.Optional(Type.Boolean()),
  note: Type.Optional(Type.String()),
  policies: Type.Array(
    Type.Object({
      policy: Type.String(),
      isPenalty: Type.Boolean(),
      mode: Type.String(),
      allowed: Type.Optional(Type.Boolean()),
      limit: Type.Optional(Type.Union([count, Type.Literal('unlimited')])),
      used: Type.Optional(count),
      capacity: Type.Optional(count),
      refillMs: Type.Optional(count),
      remaining: Type.Optional(count),
      resetMs: Type.Optional(count),
      retryAfterMs: Type.Optional(count),
      denied: Type.Record(Type.String(), count),
    }),
  ),
})
export type Lookup = Static<typeof lookupAnswer>

export const actionAnswer = Type.Object({
  digest: Type.String(),
  found: Type.Boolean(),
  dryRun: Type.Boolean(),
  note: Type.Optional(Type.String()),
  policies: Type.Array(
    Type.Object({
      policy: Type.String(),
      found: Type.Boolean(),
      until: Type.Optional(Type.Integer()),
    }),
  ),
})
export type KeyAction = Static<typeof actionAnswer>

const touched = Type.Array(
  Type.Object({
    digest: Type.String(),
    name: Type.Optional(Type.String()),
    perWindow: Type.Number(),
  }),
)

export const changeAnswer = Type.Object({
  version: Type.String(),
  dryRun: Type.Boolean(),
  differences: Type.Array(
    Type.Object({
      path: Type.String(),
      from: Type.Optional(Type.Unknown()),
      to: Type.Optional(Type.Unknown()),
      newCount: Type.Boolean(),
    }),
  ),
  affected: Type.Object({
    known: Type.Boolean(),
    why: Type.Optional(Type.String()),
    policies: Type.Array(
      Type.Object({ policy: Type.String(), newlyDenied: touched, newlyAllowed: touched }),
    ),
  }),
})
export type Change = Static<typeof changeAnswer>

export const policiesAnswer = Type.Object({
  version: Type.String(),
  kill: Type.String(),
  killedBy: Type.Optional(Type.String()),
  entries: Type.Array(
    Type.Object({
      policy: Type.String(),
      field: Type.String(),
      value: Type.Unknown(),
      until: Type.Optional(Type.String()),
    }),
  ),
})
export type PoliciesInForce = Static<typeof policiesAnswer>

export const exportAnswer = Type.Object({ version: Type.String(), text: Type.String() })
