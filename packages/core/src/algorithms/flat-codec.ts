import type { Codec, OwnOptions } from './algorithm.ts'

type Flat<State> = { readonly [field in keyof State]: number }

/**
 * The codec of a state whose fields are all integers. They are written in the order of a new
 * state's fields, so changing that order changes the format.
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

/** Traits that most windows share. */
export const plainWindow: {
  keyShape(policy: { windowMs: number }): string
  lifeMs(policy: { windowMs: number }): number
} = {
  keyShape: ({ windowMs }) => String(windowMs),
  lifeMs: ({ windowMs }) => windowMs,
}

/** For an algorithm without specific options. */
export const noOptions: OwnOptions<object, object> = { fields: {}, read: () => ({}) }
