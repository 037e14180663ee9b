import { isPromise } from '@sluice/core'

const maxFieldsLength = 4_000

/** The part of a record that the user's `fields` adds. */
export interface AddedFields {
  /** Fields that `fields` added, as JSON can carry them. */
  readonly fields?: unknown
  /**
   * The reason for missing fields, or a missing `traceId`: the function threw, it returned a
   * promise, or the fields were too long.
   */
  readonly fieldsError?: string
}

/**
 * Returns the fields of the user's function as JSON: bounded, without cycles. An error of it never
 * reaches a request.
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
    if (hasPromise) return { fieldsError: 'fields has a promise: return what is known at once' }
    if (text.length <= maxFieldsLength) return { fields: JSON.parse(text) }
    return { fieldsError: `fields are ${text.length} characters long: ${maxFieldsLength} at most` }
  } catch (error) {
    return { fieldsError: reasonOf(error) }
  }
}

/** The id of a trace; a record without it is better than none. */
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

/** Has nobody wait for a promise: where it rejects, that is no error of the process. */
function leaveAlone(promise: Promise<unknown>): void {
  Promise.resolve(promise).catch(() => {
    // The record says already that a promise cannot be used.
  })
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message.slice(0, 200) : 'no Error'
}
