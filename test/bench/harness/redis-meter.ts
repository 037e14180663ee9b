import type { Redis } from 'ioredis'

export async function readRedis(control: Redis) {
  const [cpu, commands] = await Promise.all([control.info('cpu'), control.info('commandstats')])
  return {
    /** Of its main thread, which runs all commands and scripts. */
    cpuUs: Math.round((cpuSeconds(cpu, 'user') + cpuSeconds(cpu, 'sys')) * 1e6),
    /** A round trip each. What scripts call inside is no command of a client, and all subjects here ask by script. */
    commands: callsOf(commands, 'evalsha') + callsOf(commands, 'eval'),
  }
}

/** Of the main thread where the server tells (since 6.2 on most systems), else of the whole process. */
function cpuSeconds(info: string, kind: 'user' | 'sys'): number {
  const field = (name: string) => new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1]
  return Number(field(`used_cpu_${kind}_main_thread`) ?? field(`used_cpu_${kind}`))
}

function callsOf(info: string, command: string): number {
  return Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(info)?.[1] ?? 0)
}
