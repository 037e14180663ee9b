import { tagged } from './header.ts'
import { defineKey, type KeyResolver } from './key-resolver.ts'

/** The token of `Authorization: Bearer <token>`; missing with another scheme. */
export function bearer(): KeyResolver<unknown> {
  return defineKey((_native, request) => {
    const [scheme, token] = (request.header('authorization') ?? '').trim().split(/ +/, 2)
    return scheme?.toLowerCase() === 'bearer' ? tagged('@bearer/', token) : undefined
  })
}
