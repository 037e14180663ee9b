import { invalid } from '@sluice/core'
import type { HttpRequest } from '../adapter/request.ts'
import { defineIdentity, type IdentityResolver } from './resolver.ts'

/**
 * The value of a request header. A blank one is missing. Long values are fine: stores digest them. **Clients choose their headers**: a
 * header is an identity only if a proxy of yours, or something before the limiter, sets or checks it. Else each value that a client makes up
 * gets a full limit of its own.
 */
export function header(name: string): IdentityResolver<unknown> {
  const field = headerName(name, 'header(name)')
  const tag = `@header/${field}/`
  return defineIdentity(
    (_native, request) => tagged(tag, present(request, field)),
    (value) => tag + identityText(value, `header('${field}').keyOf(value)`),
  )
}

/** Text that is not empty. It is not shown: it may be a secret. */
export function identityText(value: unknown, option: string): string {
  if (typeof value === 'string' && value !== '') return value
  throw invalid({ option }, typeof value === 'string' ? '' : typeof value, 'text that is not empty')
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
