-- Lets sbatch, salloc and srun ask Berth: a filter for Slurm's commands (CliFilterPlugins=lua in slurm.conf), which runs in the command, as its user.
--
-- A job asks for a promise by its comment, --comment=berth:deadline=now+2h, or a line #BERTH in its script, such as
-- #BERTH --deadline="tomorrow 08:00". All other jobs go their way, and nothing is started for them. A job that asks and cannot be promised
-- is not handed in, and the command says why. Until Slurm has the job of sbatch or salloc, its reservation is only held: if Slurm refuses the
-- job, it is given back when that time is over.
--
-- A site that has no filter makes /etc/slurm/cli_filter.lua with this line, and one that has one adds it at the end:
--   pcall(dofile, "/usr/share/berth/cli_filter.lua")
-- With it nothing is lost when this file goes. Functions of the site that were there before are called first.

local berth = os.getenv("BERTH_COMMAND") or "berth" -- found on the PATH of the user
local patience = os.getenv("BERTH_PATIENCE") or "20s"
local hold = os.getenv("BERTH_HOLD") or "2m" -- 0 for no hold
local held = {} -- ids of reservations whose jobs Slurm does not have yet
local options_of = { -- what Berth reads, as Slurm's filters name it
  "nodes", "ntasks", "ntasks-per-node", "cpus-per-task", "time", "partition", "account", "qos", "constraint", "nodelist", "exclude",
  "mem", "gres", "gpus-per-node", "licenses", "begin", "deadline", "comment", "clusters", "array",
}

-- What a filter gets for an option that is not given, 4294967294 minutes among others, or that the command does not have.
local nothing = {
  [""] = true, ["0"] = true, ["-2"] = true, ["unset"] = true, ["Unknown"] = true, ["N/A"] = true, ["2982616-04:14:00"] = true, ["(null)"] = true,
  ["invalid-context"] = true,
}

local function get(options, name)
  local ok, value = pcall(function() return options[name] end)
  if not ok or value == nil then return nil end
  value = tostring(value)
  if nothing[value] or name == "nodes" and value:match("%-0$") then return nil end
  return value
end

local function quoted(word) return "'" .. word:gsub("'", "'\\''") .. "'" end

-- The script may have lines for Berth before its first command.
local function says_berth(path)
  local file = io.open(path, "r")
  if not file then return false end
  local found, left = false, 10000
  for line in file:lines() do
    left = left - 1
    if line:match("^#BERTH%s") then found = true break end
    if left == 0 or not (line:match("^%s*$") or line:match("^%s*#")) then break end
  end
  file:close()
  return found
end

-- Where a script without a / is not in this folder, sbatch looks along the PATH.
local function script_of(options)
  local ok, argv = pcall(function() return options["argv"] end)
  if options["type"] ~= "sbatch" or not ok or type(argv) ~= "table" or not argv[1] then return nil end
  local name = argv[1]
  local file = io.open(name, "r")
  if file then file:close() return name end
  if name:find("/") then return nil end
  for folder in (os.getenv("PATH") or ""):gmatch("[^:]+") do
    file = io.open(folder .. "/" .. name, "r")
    if file then file:close() return folder .. "/" .. name end
  end
  return nil
end

-- run returns what a command writes as KEY=VALUE, and its exit code.
local function run(words)
  local line = {}
  for i = 1, #words do line[i] = quoted(words[i]) end
  -- Lua 5.1 has no exit code of a pipe.
  local pipe = io.popen(table.concat(line, " ") .. " </dev/null; echo exit=$?", "r")
  if not pipe then return nil end
  local said = {}
  for text in pipe:lines() do
    local key, value = text:match("^(%l+)=(.*)$")
    if key then said[key] = value end
  end
  pipe:close()
  return said
end

local function ask(options)
  local comment = get(options, "comment") or ""
  local asks = comment == "berth" or comment:sub(1, 6) == "berth:"
  local script = script_of(options)
  if script and not says_berth(script) then script = nil end
  if not asks and not script then return true end
  -- One that names its reservation needs no other, and a step runs in that of its job.
  if get(options, "reservation") or options["type"] == "srun" and os.getenv("SLURM_JOB_ID") then return true end
  local words = { berth, "sbatch", "--reserve-only", "--timeout=" .. patience }
  -- srun tells of its job when it has its nodes, which may be days later.
  local holds = hold ~= "0" and options["type"] ~= "srun"
  if holds then words[#words + 1] = "--held-for=" .. hold end
  for _, name in ipairs(options_of) do
    local value = get(options, name)
    if value then words[#words + 1] = "--" .. name .. "=" .. value end
  end
  if script then
    words[#words + 1] = "--"
    words[#words + 1] = script
  else
    words[#words + 1] = "--wrap=true"
  end
  local said = run(words)
  if not said then return false, "cannot start " .. berth end
  if said.exit ~= "0" or not said.reservation then
    if said.exit == "127" then return false, "the command " .. berth .. " is not there; without it use no comment berth: and no line #BERTH" end
    return false, "no job is handed in without its promise"
  end
  if holds then held[#held + 1] = said.id end
  options["reservation"] = said.reservation
  if said.partition and said.partition ~= "" and not get(options, "partition") then options["partition"] = said.partition end
  return true
end

-- Slurm has the job, so its reservation is kept.
local function confirm(job)
  local ids = held
  held = {}
  for _, id in ipairs(ids) do
    local said = run({ berth, "confirm", "--timeout=" .. patience, id })
    if not said or said.exit ~= "0" then
      slurm.log_error("berth: job %d ends with its reservation %s, which is only held, for %s; until then it is kept by: %s confirm %s", job, id, hold, berth, id)
    end
  end
end

local before = { setup = slurm_cli_setup_defaults, pre = slurm_cli_pre_submit, post = slurm_cli_post_submit }

function slurm_cli_setup_defaults(options, early)
  if before.setup then return before.setup(options, early) end
  return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, offset)
  if before.pre then
    local answer = before.pre(options, offset)
    if answer ~= slurm.SUCCESS then return answer end
  end
  local ran, promised, why = pcall(ask, options)
  if ran and promised then return slurm.SUCCESS end
  slurm.log_error("berth: %s", tostring(ran and why or promised))
  return slurm.ERROR
end

function slurm_cli_post_submit(offset, job, step)
  pcall(confirm, job)
  if before.post then return before.post(offset, job, step) end
  return slurm.SUCCESS
end
