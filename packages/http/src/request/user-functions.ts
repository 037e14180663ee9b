import {
  type ErrorCode,
  isPromise,
  type JoinedObservers,
  type MaybePromise,
  notify,
  onOneLine,
  warnOnce,
} from '@sluice/core'

/**
 * Maps items one after another. It returns a promise only if a result is one, and never has two
 * pending at once: one could reject unhandled while another throws.
 */
export function inOrder<Item, Answer>(
  items: readonly Item[],
  ask: (item: Item) => MaybePromise<Answer>,
): MaybePromise<readonly Answer[]> {
  const answers: Answer[] = []
  const remaining = items.values()
  for (const item of remaining) {
    const answer = ask(item)
    if (isPromise(answer)) return awaitRest(answer)
    answers.push(answer)
  }
  return answers

  async function awaitRest(first: Promise<Answer>): Promise<readonly Answer[]> {
    answers.push(await first)
    for (const item of remaining) answers.push(await ask(item))
    return answers
  }
}

/** Calls a function. If it throws or rejects, the result is what `failed` makes of the error. */
export function caught<Answer, Instead>(
  call: () => MaybePromise<Answer>,
  failed: (error: unknown) => MaybePromise<Instead>,
): MaybePromise<Answer | Instead> {
  try {
    const answer = call()
    return isPromise(answer) ? answer.catch(failed) : answer
  } catch (error) {
    return failed(error)
  }
}

/**
 * Returns the error of a user's function. For programming mistakes, such as a missing property, the
 * message also names the option. Errors that users throw on purpose stay unchanged, for handlers
 * that know them.
 */
export function located(error: unknown, place: string): unknown {
  const isMistake = error instanceof TypeError || error instanceof ReferenceError
  if (!isMistake || Object.keys(error).length > 0) return error
  const Mistake = error instanceof TypeError ? TypeError : ReferenceError
  return new Mistake(`${place}: ${error.message}`, { cause: error })
}

/** A value, or a function of the framework's request that returns it. */
export type PerRequest<Native, Value> = Value | ((native: Native) => MaybePromise<Value>)

/** Reports an invalid value. `place` does not depend on the value, `detail` does. */
export type Report = (code: ErrorCode, place: string, detail: string) => void

/** Notifies the observer. Without one, it warns once per place, whatever the values are. */
export function reporter({ onInvalid }: Pick<JoinedObservers<never>, 'onInvalid'>): Report {
  return (code, place, detail) => {
    if (onInvalid) notify(onInvalid, { code, message: onOneLine(`${place}: ${detail}`) })
    else warnOnce(`${place}: ${detail} (use onInvalid to see every occurrence)`, `${code} ${place}`)
  }
}
