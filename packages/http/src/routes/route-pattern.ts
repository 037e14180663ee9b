import { METHODS } from 'node:http'
import { SluiceError, show } from '@sluice/core'

/** A key of `routes`, taken apart. */
export interface RoutePattern {
  /** Upper case, GET for HEAD too; `undefined`: every method. */
  readonly method: string | undefined
  /** As find-my-way takes it: `/users/:id`, `/files/*`. */
  readonly path: string
}

const shape = /^(?:(\S+)\s+)?(\/\S*|\*)$/

/**
 * Reads a key of `routes`, such as `POST /login` or `/health`.
 * @throws SluiceError when it is none
 */
export function routePattern(text: string): RoutePattern {
  const [, method, path = ''] = shape.exec(text) ?? []
  if (path === '') {
    throw wrong(text, `it must be a path, or a method and a path: '/health', 'POST /login'`)
  }
  if (method !== undefined && !METHODS.includes(method)) {
    const meant = METHODS.includes(method.toUpperCase()) ? `write ${method.toUpperCase()}` : ''
    throw wrong(text, `${show(method)} is no method of HTTP${meant ? `; ${meant}` : ''}`)
  }
  if (method === 'HEAD') throw wrong(text, 'HEAD counts as GET; write GET')
  if (/[{}\\]/.test(path.replace(/\(.*\)/, ''))) {
    throw wrong(
      text,
      `paths have parameters (/users/:id), optional ones last (/users/:id?), and a wildcard at their end (/files/*)`,
    )
  }
  return { method, path }
}

function wrong(text: string, reason: string): SluiceError {
  return new SluiceError('SLUICE_ROUTE_INVALID', `routes: ${show(text)} is no route: ${reason}`)
}
