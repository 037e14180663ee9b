import { isPromise } from '@sluice/core'

const maxFieldsLength = 4_000

/** The part of a record added by the user's `fields`. */
export interface AddedFields {
  /** Fields returned by `fields`, as JSON. */
  readonly fields?: unknown
  /**
   * The reason for missing fields, or a missing `traceId`: the function threw, it returned a
   * promise, or the fields were too long.
   */
  readonly fieldsError?: string
}

/**
 * Returns the fields of the user's function as JSON: bounded and without cycles. Its errors never
 * reach a request.
 */
export function written(find: () => unknown): AddedFields {
  let hasPromise = false
  function withoutPromises(_: string, value: unknown): unknown {
    if (!isPromise(value)) return value
    hasPromise = true
    leaveAlone(value)
    return undefined
  }
  try {
    const text = JSON.stringify(find(), withoutPromises) ?? 'null'
    if (hasPromise)
      return { fieldsError: 'fields contains a promise: return only values that are known at once' }
    if (text.length <= maxFieldsLength) return { fields: JSON.parse(text) }
    return {
      fieldsError: `fields are ${text.length} characters long, but may have at most ${maxFieldsLength}`,
    }
  } catch (error) {
    return { fieldsError: reasonOf(error) }
  }
}

/** Returns a trace id. A record without one is better than no record. */
export function traced(find: () => unknown): { traceId?: string; fieldsError?: string } {
  try {
    const id = find()
    if (typeof id === 'string') return { traceId: id }
    if (!isPromise(id)) return {}
    leaveAlone(id)
    return { fieldsError: 'traceId returned a promise: return the id at once' }
  } catch (error) {
    return { fieldsError: reasonOf(error) }
  }
}

/** Ignores a promise, so that its rejection does not crash the process. */
function leaveAlone(promise: Promise<unknown>): void {
  Promise.resolve(promise).catch(() => {
    // The record already says that a promise cannot be used.
  })
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message.slice(0, 200) : 'not an Error'
}
