import { invalid, knownFields, wholeNumber } from '@sluice/core'
import { type KeptBounds, keptBounds } from '../kept-bounds.ts'
import type { BullmqBrokerOptions } from './broker.ts'
import { type Connect, connectOf } from './connection.ts'

/** The checked options of a BullMQ broker, with the defaults filled in. */
export interface BullmqSetup extends KeptBounds {
  readonly name: string
  readonly prefix: string
  readonly connect: Connect
  readonly deadlineMs: number
  readonly onError: ((error: Error) => void) | undefined
}

const optionNames: readonly (keyof BullmqBrokerOptions)[] = [
  'connection',
  'name',
  'prefix',
  'maxDeadLetters',
  'maxKept',
  'maxKeptBytes',
  'deadlineMs',
  'onError',
]

export function setUpBullmq(options: BullmqBrokerOptions): BullmqSetup {
  knownFields(options, 'bullmqBroker', optionNames)
  const { connection, name = 'jobs', prefix = 'bull', onError } = options
  const { deadlineMs = 2_000 } = options
  if (typeof name !== 'string' || !/^[A-Za-z0-9._-]{1,128}$/.test(name)) {
    throw invalid({ option: 'name' }, name, "1 to 128 letters, digits, '.', '_' and '-'")
  }
  if (typeof prefix !== 'string' || prefix === '') {
    throw invalid({ option: 'prefix' }, prefix, "a text, as in 'bull' or '{bull}'")
  }
  if (onError !== undefined && typeof onError !== 'function') {
    throw invalid({ option: 'onError' }, onError, 'a function of the error')
  }
  return {
    name,
    prefix,
    connect: connectOf(connection, prefix),
    ...keptBounds(options),
    deadlineMs: wholeNumber(deadlineMs, { option: 'deadlineMs' }, { min: 1, max: 60_000 }),
    onError,
  }
}
