/*
 * A frame is printed each ten seconds, and when the agent asks for one by a signal 0 to itself. The agent gets at most five a second,
 * since every process may send it signals. A frame of the ten seconds suppresses no other, as the one that the agent asks for is newer.
 * dtrace reads the buffers ten times a second while the agent asks often, and else once a second.
 */
BEGIN
{
	framed = timestamp;
	asked = (uint64_t)0;
	often = 0;
}

syscall::kill:entry
{
	this->due = arg0 == AGENT && arg1 == 0 && timestamp - framed >= 200000000 ? 1 : 0;
}

profile:::tick-10s
{
	this->due = 1;
}

syscall::kill:entry
/this->due && timestamp - asked < 5000000000/
{
	often = 1;
	setopt("switchrate", "10hz");
	setopt("aggrate", "10hz");
}

profile:::tick-1s
/often && timestamp - asked >= 5000000000/
{
	often = 0;
	setopt("switchrate", "1hz");
	setopt("aggrate", "1hz");
}

syscall::kill:entry
/this->due/
{
	asked = timestamp;
}

syscall::kill:entry
/this->due/
{
	framed = timestamp;
}

