// Mooncite's tools in Pi. This is a thin adapter: it asks the mooncite server beside it for
// its tools and passes every call on. One server is started for a session and kept; it ends
// when its input is closed, so also when Pi is killed.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { TSchema } from "typebox";

const program = fileURLToPath(new URL("../bin/mooncite", import.meta.url));
const protocolVersion = "2025-11-25";
const limitMs = 120_000;
const maxSaid = 2_000; // characters of what it complained of last

interface Tool {
	name: string;
	title?: string;
	description?: string;
	inputSchema: unknown;
}

interface ToolResult {
	content?: { type: string; text?: string }[];
	structuredContent?: unknown;
	isError?: boolean;
}

interface Reply {
	id?: number;
	result?: unknown;
	error?: { message: string };
}

interface Waiting {
	resolve(result: unknown): void;
	reject(error: Error): void;
}

// Server is one running mooncite process.
class Server {
	private readonly child: ChildProcessWithoutNullStreams;
	private readonly waiting = new Map<number, Waiting>();
	private lastId = 0;
	ended = false;

	constructor() {
		this.child = spawn(program, ["serve"], { stdio: ["pipe", "pipe", "pipe"] });
		let said = "";
		this.child.stderr.setEncoding("utf8").on("data", (text: string) => {
			said = (said + text).slice(-maxSaid);
		});
		this.child.stdin.on("error", () => this.child.kill()); // which ends it, if it has not ended
		this.child.on("error", () => this.end("mooncite could not be started"));
		this.child.on("exit", () => {
			this.ended = true; // calls to come go to another
		});
		// Only then all that it answered and said is here.
		this.child.on("close", () => this.end(["mooncite has ended", said.trim().replace(/^mooncite: /, "")].filter(Boolean).join(": ")));
		createInterface({ input: this.child.stdout }).on("line", (line) => this.receive(line));
	}

	private receive(line: string): void {
		let reply: Reply;
		try {
			reply = JSON.parse(line) as Reply;
		} catch {
			return;
		}
		if (typeof reply.id !== "number") return;
		const call = this.waiting.get(reply.id);
		this.waiting.delete(reply.id);
		if (reply.error) call?.reject(new Error(reply.error.message));
		else call?.resolve(reply.result);
	}

	private end(why: string): void {
		this.ended = true;
		for (const call of this.waiting.values()) call.reject(new Error(why));
		this.waiting.clear();
	}

	private send(message: object): void {
		this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
	}

	notify(method: string, params: object = {}): void {
		if (!this.ended) this.send({ method, params });
	}

	request(method: string, params: object, signal?: AbortSignal): Promise<unknown> {
		if (this.ended) return Promise.reject(new Error("mooncite has ended"));
		signal?.throwIfAborted();
		const id = ++this.lastId;
		return new Promise<unknown>((resolve, reject) => {
			const done = () => {
				clearTimeout(timer);
				signal?.removeEventListener("abort", aborted);
			};
			const giveUp = (reason: string) => {
				if (!this.waiting.delete(id)) return;
				done();
				this.notify("notifications/cancelled", { requestId: id, reason });
				reject(new Error(reason));
			};
			const aborted = () => giveUp("the call was cancelled");
			const timer = setTimeout(() => giveUp("mooncite did not answer in time"), limitMs);
			signal?.addEventListener("abort", aborted, { once: true });
			this.waiting.set(id, {
				resolve: (result) => (done(), resolve(result)),
				reject: (error) => (done(), reject(error)),
			});
			this.send({ id, method, params });
		});
	}

	async open(): Promise<void> {
		const clientInfo = { name: "mooncite-pi", version: "1" };
		await this.request("initialize", { protocolVersion, capabilities: {}, clientInfo });
		this.notify("notifications/initialized");
	}

	close(): void {
		this.child.stdin.end();
		this.child.unref();
	}
}

export default function mooncite(pi: ExtensionAPI): void {
	let running: Promise<Server> | undefined;

	// The server that runs, or a new one when there is none or it has ended. Several calls
	// may ask at once.
	async function server(): Promise<Server> {
		const asked = running;
		const known = await asked?.catch(() => undefined);
		if (known && !known.ended) return known;
		if (running !== asked) return server(); // another call has started one
		const fresh = new Server();
		running = fresh.open().then(() => fresh);
		return running;
	}

	async function call(name: string, args: unknown, signal?: AbortSignal): Promise<ToolResult> {
		const to = await server();
		return (await to.request("tools/call", { name, arguments: args }, signal)) as ToolResult;
	}

	function register(tool: Tool): void {
		pi.registerTool({
			name: tool.name,
			label: tool.title ?? tool.name,
			description: tool.description ?? tool.name,
			parameters: tool.inputSchema as TSchema,
			async execute(_id, params, signal) {
				const result = await call(tool.name, params, signal);
				const text = (result.content ?? []).map((part) => part.text ?? "").join("\n");
				if (result.isError) throw new Error(text);
				return { content: [{ type: "text" as const, text }], details: result.structuredContent ?? {} };
			},
		});
	}

	pi.on("session_start", async (_event, ctx) => {
		try {
			const { tools } = (await (await server()).request("tools/list", {})) as { tools: Tool[] };
			for (const tool of tools) register(tool);
		} catch (error) {
			ctx.ui.notify(`mooncite: ${error instanceof Error ? error.message : String(error)}`, "warning");
		}
	});

	pi.on("session_shutdown", async () => {
		const last = await running?.catch(() => undefined);
		running = undefined;
		last?.close();
	});
}
