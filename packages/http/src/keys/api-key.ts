import { given, knownFields } from '@sluice/core'
import { headerName, present, tagged } from './header.ts'
import { defineKey, type KeyResolver } from './key-resolver.ts'

export interface ApiKeyOptions {
  /** The header that carries it. @default 'x-api-key' */
  header?: string
}

/** The API key of a request. Only keys that were verified before say who somebody is: anybody can make up another. */
export function apiKey(options: ApiKeyOptions = {}): KeyResolver<unknown> {
  knownFields(options, 'apiKey', ['header'])
  const field = headerName(given(options.header, 'x-api-key'), 'header')
  return defineKey((_native, request) => tagged('@key/', present(request, field)))
}
