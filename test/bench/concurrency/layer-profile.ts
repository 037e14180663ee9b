import { Session } from 'node:inspector/promises'
import type { Figures } from '../harness/figures.ts'
import { layerOf } from './layers.ts'

const intervalUs = 200

/** The share of each layer in the time that the process was busy while `work` ran. */
export async function profileLayers(work: () => Promise<unknown>): Promise<Figures> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: intervalUs })
  await session.post('Profiler.start')
  await work()
  const { profile } = await session.post('Profiler.stop')
  session.disconnect()

  const { nodes, samples = [], timeDeltas = [] } = profile
  const layers = new Map(nodes.map(({ id, callFrame }) => [id, layerOf(callFrame)]))
  const times = new Map<string, number>()
  let busy = 0
  for (const [index, id] of samples.entries()) {
    const layer = layers.get(id)
    // A sample that came late says that the machine was busy with something else, and not that this layer ran so long.
    const time = Math.min(timeDeltas[index] ?? 0, 2 * intervalUs)
    if (layer === undefined) continue
    busy += time
    times.set(layer, (times.get(layer) ?? 0) + time)
  }
  return Object.fromEntries([...times].map(([layer, time]) => [layer, time / busy]))
}
