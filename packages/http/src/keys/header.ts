import { invalid } from '@sluice/core'
import type { HttpRequest } from '../http-request.ts'
import { defineKey, type KeyResolver } from './key-resolver.ts'

/** The value of a request header. A blank one is missing. Long values are fine: stores digest them. */
export function header(name: string): KeyResolver<unknown> {
  const field = headerName(name, 'header(name)')
  return defineKey((_native, request) => tagged(`@header/${field}/`, present(request, field)))
}

/** The value of a header, `undefined` when it is absent or blank. */
export function present(request: HttpRequest, field: string): string | undefined {
  const value = request.header(field)
  return value === undefined || value.trim() === '' ? undefined : value
}

export function tagged(tag: string, value: string | undefined): string | undefined {
  return value === undefined ? undefined : `${tag}${value}`
}

/** The lower-case name of a header field. */
export function headerName(name: unknown, option: string): string {
  if (typeof name === 'string' && /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/.test(name)) {
    return name.toLowerCase()
  }
  throw invalid({ option }, name, `the name of a header, such as 'x-api-key'`)
}
