import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Ports of the example and its programs. */
export interface Ports {
  /** The first instance of the API. The next ports are for the second instance, alerts, and Redis. */
  readonly api: number
  readonly prometheus: number
  readonly alertmanager: number
}

const folder = mkdtempSync(join(tmpdir(), 'sluice-fleet-'))
const running: ChildProcess[] = []

/** Starts a program that stops with the example. */
export function start(
  program: string,
  args: readonly string[],
  options: SpawnOptions = { stdio: ['ignore', 'ignore', 'inherit'] },
): ChildProcess {
  const child = spawn(program, args, options)
  running.push(child)
  return child
}

export async function stopAll(): Promise<void> {
  const left = running.filter(({ exitCode, signalCode }) => exitCode === null && !signalCode)
  for (const child of left) {
    const ended = once(child, 'exit')
    // A frozen program must continue before it can exit.
    child.kill('SIGCONT')
    child.kill('SIGTERM')
    await ended
  }
  rmSync(folder, { recursive: true, force: true })
}

/** Returns the first program that is installed on this machine. */
function find(names: readonly string[]): string | undefined {
  return names.find((name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0)
}

/** A separate Redis, which can be frozen. */
export function startRedis(port: number): ChildProcess | undefined {
  const program = find(['redis-server', 'valkey-server'])
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  return program ? start(program, args) : undefined
}

/** Starts Prometheus, unless one is already listening. Returns whether there is one. */
export async function startPrometheus(ports: Ports): Promise<boolean> {
  if (await isHealthy(ports.prometheus)) return true
  const program = find(['prometheus'])
  if (!program) return false
  const config = configOf('prometheus.yml', ports)
  const address = `--web.listen-address=127.0.0.1:${ports.prometheus}`
  const data = `--storage.tsdb.path=${join(folder, 'prometheus')}`
  start(program, [`--config.file=${config}`, address, data, '--log.level=error'])
  return true
}

/** Starts Alertmanager, unless one is already listening. Returns whether there is one. */
export async function startAlertmanager(ports: Ports): Promise<boolean> {
  if (await isHealthy(ports.alertmanager)) return true
  // Debian calls it by the longer name.
  const program = find(['alertmanager', 'prometheus-alertmanager'])
  if (!program) return false
  const config = configOf('alertmanager.yml', ports)
  const address = `--web.listen-address=127.0.0.1:${ports.alertmanager}`
  const data = `--storage.path=${join(folder, 'alertmanager')}`
  const alone = ['--cluster.listen-address=', '--log.level=error']
  start(program, [`--config.file=${config}`, address, data, ...alone])
  return true
}

async function isHealthy(port: number): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${port}/-/healthy`).catch(() => undefined)
  return answer?.ok ?? false
}

/** The configuration for Docker's network, adapted to this machine. */
function configOf(name: string, { api, alertmanager }: Ports): string {
  const path = (file: string) => fileURLToPath(new URL(file, import.meta.url))
  const text = readFileSync(path(name), 'utf8')
    .replaceAll(
      /host\.docker\.internal:300(\d)/g,
      (_, offset) => `127.0.0.1:${api + Number(offset)}`,
    )
    .replaceAll('alertmanager:9093', `127.0.0.1:${alertmanager}`)
    .replaceAll('/etc/prometheus/quick.rules.yml', path('quick.rules.yml'))
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}
