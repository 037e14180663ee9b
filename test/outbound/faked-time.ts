import {
  createOutbound,
  type Outbound,
  type OutboundEvent,
  type OutboundOptions,
} from '@sluice/outbound'
import { beforeEach } from 'vitest'
import { fakeTime as fake } from '../support/fake-time.ts'

export function fakeTime(): void {
  const intervals = ['setInterval', 'clearInterval'] as const
  fake(['Date', 'setTimeout', 'clearTimeout', ...intervals, 'performance'])
}

/** Makes outbounds with some options in common, and keeps what each test observes of them. */
export function observed(common: Pick<OutboundOptions, 'limits'> & Partial<OutboundOptions>) {
  const events: OutboundEvent[] = []
  beforeEach(() => void events.splice(0))
  const observers = { onEvent: (event: OutboundEvent) => void events.push(event) }
  const make = (options: Partial<OutboundOptions> = {}): Outbound =>
    createOutbound({ name: 'crm', observers, ...common, ...options })
  return { events, make }
}

export function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
