import type { FieldKind } from './ledger.ts'

/** A rate-limit field that exists. The lower-case name is what Node looks headers up by. */
export interface LimitField {
  readonly name: string
  readonly lowerCase: string
}

/** Who writes one of a kind answers for all of that kind. */
export const fieldsOfKind: Readonly<Record<FieldKind, readonly LimitField[]>> = {
  ietf: [
    'RateLimit-Policy',
    'RateLimit',
    'RateLimit-Limit',
    'RateLimit-Remaining',
    'RateLimit-Reset',
  ].map(limitField),
  legacy: [
    'X-RateLimit-Limit',
    'X-RateLimit-Remaining',
    'X-RateLimit-Reset',
    'X-RateLimit-Used',
    'X-RateLimit-Resource',
  ].map(limitField),
}

function limitField(name: string): LimitField {
  return { name, lowerCase: name.toLowerCase() }
}
