import type { FieldKind } from './ledger.ts'

/** The rate-limit fields that exist. Who writes one of a kind answers for all of that kind. */
export const fieldsOfKind: Readonly<Record<FieldKind, readonly string[]>> = {
  ietf: [
    'RateLimit-Policy',
    'RateLimit',
    'RateLimit-Limit',
    'RateLimit-Remaining',
    'RateLimit-Reset',
  ],
  legacy: [
    'X-RateLimit-Limit',
    'X-RateLimit-Remaining',
    'X-RateLimit-Reset',
    'X-RateLimit-Used',
    'X-RateLimit-Resource',
  ],
}

interface LimitField {
  readonly name: string
  readonly kind: FieldKind
}

const byLowerCase = new Map<string, LimitField>()
for (const kind of ['ietf', 'legacy'] as const) {
  for (const name of fieldsOfKind[kind]) byLowerCase.set(name.toLowerCase(), { name, kind })
}

/** The rate-limit field of a name in lower case; `undefined` for all others. */
export function limitField(lowerCase: string): LimitField | undefined {
  return byLowerCase.get(lowerCase)
}
