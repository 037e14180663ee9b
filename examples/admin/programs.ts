import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Where the example and its programs listen. */
export interface Ports {
  /** Of the first instance of the API. The second has the next one, alerts go to the one after it, and Redis has the one after that. */
  readonly api: number
  readonly prometheus: number
  readonly alertmanager: number
}

const folder = mkdtempSync(join(tmpdir(), 'sluice-fleet-'))
const running: ChildProcess[] = []

/** Starts a program that ends with the example. */
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
    // What is frozen has to go on before it can end.
    child.kill('SIGCONT')
    child.kill('SIGTERM')
    await ended
  }
  rmSync(folder, { recursive: true, force: true })
}

/** The first of some programs that this machine has. */
function find(names: readonly string[]): string | undefined {
  return names.find((name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0)
}

/** A Redis of its own, which may be frozen. */
export function startRedis(port: number): ChildProcess | undefined {
  const program = find(['redis-server', 'valkey-server'])
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  return program ? start(program, args) : undefined
}

/** Starts Prometheus, unless one listens there already. Whether there is one. */
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

/** Starts Alertmanager, unless one listens there already. Whether there is one. */
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

/** The configuration of Docker's network, for this machine. */
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
