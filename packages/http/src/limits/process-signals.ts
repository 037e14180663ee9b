import type { EventLoopUtilization, monitorEventLoopDelay } from 'node:perf_hooks'
import { invalid, type Option, type OptionsOf, objectOption, orDefault } from '@sluice/core'
import type { Signal } from './signal.ts'

class CpuTable {
  /** Cores the process may use: over 1 with threads, under 1 in small containers. @default 1 */
  cores?: Option<number, number> = (given, option) => {
    const cores = orDefault(given, 1)
    if (typeof cores === 'number' && Number.isFinite(cores) && cores > 0) return cores
    throw invalid({ option }, cores, 'a number above 0, such as 0.5 or 4')
  }
}

/** Options of `cpu`. */
export interface CpuOptions extends OptionsOf<CpuTable> {}

/** Several limits may share a signal: a second read shortly after the first gets the same value. */
const shortestMs = 250

/** Sampling period of the event loop, in ms. */
const resolutionMs = 20

/**
 * The average delay of this process's event loop since the last read, in ms. It is measured from
 * the first request on. Low is 20, high 70.
 */
export function eventLoopDelay(): Signal {
  let histogram: ReturnType<typeof monitorEventLoopDelay> | undefined
  let seen = { count: 0, sum: 0 }

  const sample = sinceLast((elapsedMs) => {
    if (!histogram) {
      // Not imported, so that this file loads without Node.
      const hooks = globalThis.process.getBuiltinModule('node:perf_hooks')
      histogram = hooks.monitorEventLoopDelay({ resolution: resolutionMs })
      histogram.enable()
      return undefined
    }
    // Not reset: a reset would miss the next delay.
    const { count } = histogram
    const sum = count === 0 ? 0 : (histogram.mean * count) / 1e6
    const ticks = count - seen.count
    const total = sum - seen.sum
    seen = { count, sum }
    const tickMs = ticks === 0 ? elapsedMs : total / ticks
    return Math.max(0, tickMs - resolutionMs)
  })
  return { name: 'eventLoopDelay()', low: 20, high: 70, sample }
}

/**
 * The share of time in which this process's event loop was busy since the last read: 0 to 1. Low is
 * 0.7, high 0.9.
 */
export function eventLoopUtilization(): Signal {
  let last: EventLoopUtilization | undefined
  const sample = sinceLast(() => {
    const now = performance.eventLoopUtilization()
    const share = last && performance.eventLoopUtilization(now, last).utilization
    last = now
    return share
  })
  return { name: 'eventLoopUtilization()', low: 0.7, high: 0.9, sample }
}

/**
 * The CPU time of this process since the last read, as a share of one core (or of `cores`): 1 is
 * full use. It can exceed 1, since Node has further threads besides JavaScript's. Low is 0.7, high
 * 0.9.
 * @throws SluiceError if `cores` is not a number above 0
 */
export function cpu(options: CpuOptions = {}): Signal {
  const { cores } = objectOption(new CpuTable())(options, 'cpu')
  let last: { user: number; system: number } | undefined
  const sample = sinceLast((elapsedMs) => {
    const now = globalThis.process.cpuUsage()
    const usedMs = last && (now.user - last.user + now.system - last.system) / 1_000
    last = now
    return usedMs === undefined ? undefined : usedMs / elapsedMs / cores
  })
  return { name: 'cpu()', low: 0.7, high: 0.9, sample }
}

function sinceLast(measure: (elapsedMs: number) => number | undefined): () => number | undefined {
  let measuredMs = Number.NEGATIVE_INFINITY
  let known: number | undefined
  return () => {
    const nowMs = performance.now()
    const elapsedMs = nowMs - measuredMs
    if (elapsedMs < shortestMs) return known
    measuredMs = nowMs
    known = measure(elapsedMs)
    return known
  }
}
