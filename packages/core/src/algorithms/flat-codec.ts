import type { Codec, OwnOptions } from './algorithm.ts'

type Flat<State> = { readonly [field in keyof State]: number }

/**
 * The codec of a state whose fields are all whole numbers. They are written in the order in which a
 * new state has them, so another order is another format.
 */
export function flatCodec<State extends Flat<State>>(create: () => State): Codec<State> {
  return {
    save: (state) => Object.keys(create()).map((field) => Reflect.get(state, field)),
    load(numbers) {
      const fields = Object.keys(create())
      if (numbers.length !== fields.length) return undefined
      return Object.assign(
        create(),
        Object.fromEntries(fields.map((field, index) => [field, numbers[index]])),
      )
    },
  }
}

/** The traits that most windows share. */
export const plainWindow: {
  keyShape(policy: { windowMs: number }): string
  lifeMs(policy: { windowMs: number }): number
} = {
  keyShape: ({ windowMs }) => String(windowMs),
  lifeMs: ({ windowMs }) => windowMs,
}

/** For an algorithm without options of its own. */
export const noOptions: OwnOptions<object, object> = { fields: {}, neutral: {}, read: () => ({}) }
