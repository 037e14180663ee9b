import { durationMs, onOneLine } from '@sluice/core'
import { type Command, Option } from 'commander'
import type { LogRequest } from '../formats/log-request.ts'
import { countText } from '../report/formats.ts'
import type { LogReport, UnreadableLine } from '../report/simulation-report.ts'
import { CliError, exitCodes } from '../terminal/exit-codes.ts'
import { Progress } from '../terminal/progress.ts'
import type { Style } from '../terminal/style.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { section } from '../terminal/text.ts'
import { LogReader } from './log-reader.ts'
import { behindProxies } from './proxies.ts'

/** The options of commands that read logs, as commander hands them over. */
export interface LogCommandOptions {
  readonly format: string
  readonly fields?: string
  readonly time?: 'start' | 'end'
  readonly trustProxy?: string
  readonly orderWindow: string
  readonly strict?: boolean
}

export const logNotes = `Formats: auto (the first lines tell), common, combined, vhost-combined, pino-http, caddy, traefik,
traefik-common, envoy, alb, cloudfront, json with --fields, or the log_format of nginx in quotes, with its
$variables. A file
may be packed with gzip; - is the standard input. Several files are merged by time.`

/** Adds the options of commands that read logs. */
export function addLogOptions(command: Command): Command {
  return command
    .option('-f, --format <format>', 'format of the log', 'auto')
    .option('--fields <map>', 'fields of JSON lines: time=ts,ip=client.ip,method=m,path=url,…')
    .addOption(
      new Option(
        '--time <moment>',
        'what the time of a line is: start or end of a request',
      ).choices(['start', 'end']),
    )
    .option('--trust-proxy <proxies>', 'number or networks of the proxies in front, as in Express')
    .option('--order-window <time>', 'span in which lines may be out of order', '1m')
    .option('--strict', 'fail if a line cannot be read')
}

/** Opens logs by the options of a command. Without files the standard input is the log. */
export function openLog(
  terminal: Terminal,
  files: readonly string[],
  options: LogCommandOptions,
): LogReader {
  if (files.length === 0 && terminal.stdin.isTTY) {
    throw new CliError('no log is given; name a file, or - for the standard input')
  }
  const { format, fields, time: timeIs, trustProxy } = options
  const progress = new Progress(terminal)
  return new LogReader({
    ...{ format, fields, timeIs },
    files: files.length === 0 ? ['-'] : files,
    stdin: terminal.stdin,
    orderWindowMs: durationMs(options.orderWindow, '--order-window'),
    clientAddress: trustProxy === undefined ? undefined : behindProxies(trustProxy),
    onProgress: (done, all) => progress.show(done, all),
    onEnd: () => progress.end(),
  })
}

/**
 * Reads a log to its end, and tells of lines that cannot be read.
 * @throws CliError when there is no request in it, or some line cannot be read and must be
 */
export async function readAll(
  reader: LogReader,
  { strict = false }: Pick<LogCommandOptions, 'strict'>,
  read: (pieces: AsyncIterable<readonly LogRequest[]>) => Promise<void>,
): Promise<LogReport> {
  await read(reader.read())
  const { report } = reader
  const { lines, examples } = report.unreadable
  const [example] = examples.map(textOf)
  if (strict && lines > 0) {
    throw new CliError(
      `${lines} of ${report.lines} lines cannot be read, as ${example}`,
      exitCodes.found,
    )
  }
  if (report.requests === 0) {
    throw new CliError(
      example
        ? `no line of the log can be read with --format ${report.format}: ${example}`
        : 'the log has no requests',
    )
  }
  return report
}

/** The section of a result that counts the lines that cannot be read, and shows the first few. */
export function unreadableSection({ unreadable }: LogReport, style: Style): readonly string[] {
  const { lines, examples } = unreadable
  const title = style('bold', `Lines that cannot be read: ${countText(lines)}`)
  return section(title, examples.map(textOf))
}

function textOf({ file, line, reason, text }: UnreadableLine): string {
  return `${file}:${line}: ${reason}: ${onOneLine(text)}`
}
